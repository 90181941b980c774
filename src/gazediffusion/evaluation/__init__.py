"""How close synthetic gaze is to recorded gaze: features, distances, floors, tests and the report.

Every distance stands beside the same distance between real participants. It judges windows of any
origin and must not depend on how they were generated.
"""
