"""The home folder: staging, generations, locks, atomic files. Nothing here knows a column."""
