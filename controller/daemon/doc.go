// Package daemon builds the controller's services from the configuration and
// runs them: the embedded scheduler, the watcher, the reconcile loop, the HTTP
// API on a Unix socket, and /metrics.
//
// In comes a configuration; out goes a running controller that ends when its
// context does, leaving every job as it is. It is the one place that knows all
// rooms: it joins the stages, which do not know each other, into what the loop
// asks for. It decides nothing about jobs.
//
// The story of an ended job is kept for 30 days, and of at most 10,000 of them;
// what it taught and what it counted in /metrics stays. Of a job that its
// scheduler still knows there remains that it is over. What is counted and told
// across all jobs is kept in memory, so that no scrape reads them all.
package daemon
