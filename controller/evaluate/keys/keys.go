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
