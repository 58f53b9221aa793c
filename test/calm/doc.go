// Package calm stands between a controller and an exporter and hides what others do on
// the node: a machine that runs tests is busy, and every epoch would count as disturbed.
//
// In come the exporter's answers, out go the same without the columns that tell of
// others. Everything else is passed on as it is, reports to the exporter included. What
// a job used is never changed.
package calm
