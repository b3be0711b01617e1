"""The sections of the report page as blocks of text and tables. No drawing, no HTML."""
