package tuner

import "pitchpipe/controller/evaluate/records"

// tables are those of a file of which nothing is left out.
func tables(t records.Table, in Input) ([]table, error) {
	made, _, err := tablesOf(t, in)
	return made, err
}
