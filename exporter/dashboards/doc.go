// Package dashboards holds dashboards for Grafana: node.json, job.json and budget.json.
//
// They are imported into Grafana 9.5 or newer, where they ask for a Prometheus that
// loads exporter/rules. The tests hold that each is valid, that Prometheus understands
// each of its queries, and that every metric in them exists. There is no code.
package dashboards
