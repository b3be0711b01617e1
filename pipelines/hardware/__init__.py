"""What turns cost a model on a machine: ratios, boundness, answers. Nothing is printed, no table is written."""
