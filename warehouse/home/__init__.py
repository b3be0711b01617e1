"""The home folder: staging, generations, the lake, locks, atomic files. No SQL; nothing here knows a column."""
