// Pitchpipe-gpu writes what the node's NVIDIA GPUs do, one JSON object a line, until it
// is ended or nobody reads it any more. The exporter starts it, and ends it when it falls
// silent: a driver that hangs hangs this program alone.
//
// It may load the vendor's library, and so is not a static program as the exporter is.
// It needs no right but to open the GPUs' device files for reading, and changes nothing.
package main
