"""The playground: an HTTP API and a page to generate, replay, compare and export synthetic gaze.

It parses requests, calls the public functions of the library and returns what they give. It needs
the extra `web`, and must not compute anything itself.
"""
