package classify

import "math"

// Axis is one feature and the unit it is measured in.
type Axis struct {
	Feature string  `json:"feature"`
	Median  float64 `json:"median"` // over the runs; where a run without the feature is put while clusters are sought
	Scale   float64 `json:"scale"`  // noise between runs of one kind
	Weight  float64 `json:"weight"`
	Floor   float64 `json:"floor,omitempty"` // of a feature that is ln(1 + rate): see Prior; 0 = there is none
}

// place is where a value lies on the axis. A rate, told as ln(1 + rate), lies at
// ln(1 + rate / floor): far above the floor as before but for a constant, and far
// below it all near 0.
func (a Axis) place(v float64) float64 {
	switch {
	case a.Floor == 0:
		return v
	case math.Abs(v) > vast:
		return math.Copysign(math.Abs(v)-math.Log(a.Floor), v)
	}
	return math.Copysign(math.Log1p(math.Expm1(math.Abs(v))/a.Floor), v)
}

// value is what lies at a place.
func (a Axis) value(place float64) float64 {
	switch {
	case a.Floor == 0:
		return place
	case math.Abs(place) > vast:
		return math.Copysign(math.Abs(place)+math.Log(a.Floor), place)
	}
	return math.Copysign(math.Log1p(math.Expm1(math.Abs(place))*a.Floor), place)
}

// vast is beyond what any rate is: there 1 + rate is rate, whatever the floor.
const vast = 60
