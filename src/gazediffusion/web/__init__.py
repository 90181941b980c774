"""The playground: an HTTP API and a page to see, compare and take home synthetic gaze.

Needs the extra `web`. Nothing outside this folder and the command `serve` imports it.
"""
