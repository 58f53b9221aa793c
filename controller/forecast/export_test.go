package forecast

// Word is what one model says, and how much the ensemble heeds it.
type Word struct {
	Model  Model
	Value  float64
	Weight float64 // 0 to 1; all sum to 1
}

// Words are what the models say about an epoch, without bias and lessons taken off.
func (f *Forecast) Words(epoch float64) []Word {
	told := f.ensemble.told(epoch - f.start)
	out := make([]Word, models)
	for m := range Last + 1 {
		out[m] = Word{Model: m, Value: f.u.out(told[m]), Weight: f.ensemble.weights[m]}
	}
	return out
}
