// Pitchpipe-gpu writes what the node's NVIDIA GPUs do, one JSON object a line, until it is
// ended or its output is closed. The exporter starts it, and ends it when it falls silent: a
// driver that hangs stops this program alone.
//
// It loads the vendor's library, so that it is not a static program as the exporter is. It
// needs the right to open the GPUs' device files for reading, and never changes anything.
package main
