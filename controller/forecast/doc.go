// Package forecast says how the loss or quality curve of a job goes on: its value at a
// later epoch, with an interval that the truth lies in four times out of five.
//
// It takes the epochs seen so far (Curve), what is known about the curve (Options), and
// what forecasts of ended jobs of the same kind were worth (Lesson). It returns a Forecast
// or the reason why nothing is known. The forecast is an ensemble: inverse 1/(a k + b) + c
// with nothing negative, power law, exponential, a one-parameter rule counted from now,
// and the last value. Each is fitted to prefixes of the seen epochs and judged by the rest.
// The forecast subtracts a part of the ensemble's error there, and moves less from the last
// value where that error was large. Lessons of the kind move value and interval. A single
// outlier is replaced. The fit starts again where the learning rate changed.
//
// Left estimates the rest of a job for the planner: epochs, and the seconds and joules
// that they take, with their intervals. Epochs come in (Work), a tuning.Forecast goes
// out; a job that does not say how many epochs it has is unknown. Once it has ended, Teach
// returns how good such forecasts of it were, for the next job of its kind.
//
// Scaling or shifting the curve scales or shifts the answers. Nothing is ever NaN or
// infinite, and an interval always holds its value. The package is pure, and never takes
// a missing value for zero.
package forecast
