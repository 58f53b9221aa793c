// Package e2e runs the real programs together: exporter, controller, embedded
// scheduler and real jobs, steered through the command line and killed at the worst
// moments.
//
// It holds only tests. What they need beyond the Go tool is built by them; a test
// that skips says what the machine cannot offer, such as cgroups.
package e2e
