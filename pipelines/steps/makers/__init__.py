"""One function a table makes its rows, from what is staged. Each module reaches what its tables need, no more."""
