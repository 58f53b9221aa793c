package keys

// Key is one key of the JSON of an evaluation. A key of an object within a row or a summary
// stands behind a point; of the objects of a list, behind [].
type Key struct{ Name, Meaning string }

// Evaluation is the JSON of one command beside its command and data.
type Evaluation struct {
	Command string
	Rows    []Key // of each of them
	Summary []Key
}

// All are the evaluations.
func All() []Evaluation {
	return []Evaluation{tuner(), classifier(), regret(), forecast(), speed(), search(), hyper(), plan(), verify()}
}

// leftOut are the keys of what an evaluation could not use (evaluate.LeftOut).
func leftOut(what string) []Key {
	return []Key{
		{"left_out", what},
		{"left_out[].data", "the file"},
		{"left_out[].workload", "whose rows these are"},
		{"left_out[].machine", "on which they ran"},
		{"left_out[].rows", "how many of its rows; none: the workload as a whole"},
		{"left_out[].line", "of the first of them"},
		{"left_out[].why", "what is wrong with them"},
	}
}
