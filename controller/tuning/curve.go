package tuning

// CurveLesson is what a forecast of a job's curve was worth, known once the job has ended.
// Values are in the units of the curve.
type CurveLesson struct {
	Of    string    `json:"of,omitempty"` // loss or quality; empty: there is but one
	Seen  float64   `json:"seen"`         // epoch at which the forecast was made
	Total float64   `json:"total"`        // epoch it was about: the end
	Last  float64   `json:"last"`         // value at Seen
	Told  []float64 `json:"told"`         // by each model of package forecast, in its order
	Blend float64   `json:"blend"`        // by the ensemble, without lessons
	Value float64   `json:"value"`        // what was forecast
	Unit  float64   `json:"unit"`         // the width that its interval was a multiple of
	Truth float64   `json:"truth"`        // value at Total
}
