"""The playground: an HTTP API and a page to generate, replay, compare and export synthetic gaze.

It parses requests and calls the public functions of the library; it contains no computation. It
needs the extra `web`. Nothing but the command `serve` imports it.
"""
