// Package filterproxy runs between a controller and an exporter and hides what other
// processes do on the node. A machine that runs tests is busy, and without the filter
// every epoch would count as disturbed.
//
// Input: the exporter's answers. Output: the same answers without the columns about neighbours;
// everything else passes unchanged, reports to the exporter included. It never changes
// what a job used.
package filterproxy
