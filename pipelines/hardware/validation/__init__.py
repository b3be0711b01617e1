"""Predictions beside public measurements, their errors by class, and the fit of the model's numbers. No commands."""
