package simulate

// sjf is fifo in the order of the true durations: an oracle.
func sjf() Spec { return Spec{Name: "sjf", Oracle: true, New: inOrder((*Pool).Remaining)} }
