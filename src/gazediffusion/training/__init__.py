"""Training a model on windows: batches, learner, loop, fine-tuning, calibration.

Several processes can train one run. A stopped run resumes and ends as an uninterrupted one.
It must not know evaluation.
"""
