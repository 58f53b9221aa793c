// Package dashboards holds dashboards for Grafana: node.json, job.json and budget.json show
// the exporter's metrics, tuner.json the controller's.
//
// They need Grafana 9.5 or newer and a Prometheus that loads exporter/rules. The tests check
// that each is valid, that Prometheus understands each query, and that each metric exists.
// The package has no code.
package dashboards
