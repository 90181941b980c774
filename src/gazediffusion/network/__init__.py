"""What a trained model is: network, representation of gaze, recipe, run folder, packaged weights.

It knows diffusion processes and conditioning, but neither how a model is trained nor how windows
are generated.
"""
