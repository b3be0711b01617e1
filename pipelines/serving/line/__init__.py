"""The closed-form line: one request at a time, in an order, memory without end. No policy that looks at memory here."""
