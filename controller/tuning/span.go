package tuning

import "time"

// Span is the time between two moments.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Meets reports whether a part of the time from begin to end lies in the span.
func (s Span) Meets(begin, end time.Time) bool { return begin.Before(s.To) && s.From.Before(end) }
