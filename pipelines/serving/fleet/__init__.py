"""Which turn to which machine: classes, prices, the linear programme, the threshold. No queue here."""
