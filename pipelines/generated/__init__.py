"""The generated sample: small data sets in the real sets' own file formats. No real text."""
