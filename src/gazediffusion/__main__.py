"""`python -m gazediffusion` is the command `gazediffusion`."""

from gazediffusion.cli import main

main()
