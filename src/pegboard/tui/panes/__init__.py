"""The parts of a screen; a pane knows nothing of the others."""
