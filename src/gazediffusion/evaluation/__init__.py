"""How close synthetic gaze is to recorded gaze: features, distances, floors, tests and the report.

Every distance stands beside the same distance between real participants. Windows of any origin are
evaluated alike: no other module than reading.py knows how windows are generated.
"""
