// Package daemon builds the controller's services from the configuration and
// runs them: the embedded scheduler, the watcher, the reconcile loop, the HTTP
// API on a Unix socket, and /metrics.
//
// In comes a configuration; out goes a running controller that ends when its
// context does, leaving every job as it is. It is the one place that knows all
// rooms: it joins the stages, which do not know each other, into what the loop
// asks for. It decides nothing about jobs.
package daemon
