"""The generated sample: small data sets in the real sets' file formats. No real text."""
