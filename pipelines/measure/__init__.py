"""Timing of this machine's link and accelerator. Needs PyTorch; no other package imports it."""
