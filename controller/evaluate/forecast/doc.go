// Package forecast measures the forecasts of loss and quality curves on recorded runs:
// each run is cut after a share of its epochs, forecast to its end, and compared with
// what happened.
//
// In come tables of curves (or of adaptations) and the shares; out comes a Report with a
// row for each workload, machine, measure and share. Runs are taken in the order of the
// file, as jobs that return: the forecast of a run may learn from the runs before it,
// which have ended, and never from a later one. What the same code says without any
// earlier run stands beside it, and so do the last value and each single model.
//
// A forecast that is refused counts as unknown and not as an error; the other figures of
// the row are then over the same runs for all. The package never shows a forecast what
// comes after the cut.
package forecast
