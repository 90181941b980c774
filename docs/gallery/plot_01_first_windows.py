"""
First windows of a task
=======================

Eight seconds of reading and of film viewing.
"""

import gazediffusion as gd

print(gd.__version__)
