"""The playground: an HTTP API and a page to generate, replay, compare and export synthetic gaze.

<<<<<<< HEAD
It parses requests and calls the public functions of the library; it contains no computation. It
needs the extra `web`. Nothing but the command `serve` imports it.
=======
It parses requests, calls the public functions of the library and returns what they give. It needs
the extra `web`, and must not compute anything itself.
>>>>>>> main
"""
