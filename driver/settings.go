package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// SettingsVariable names the settings file in a job's environment. Where it is
// set the file is there from the attempt's first moment on.
const SettingsVariable = "PITCHPIPE_SETTINGS"

// Adapter is a driver that can write to the settings file of a job that runs.
type Adapter interface {
	// Adapt adds settings to those of the file that SettingsVariable names, for the present attempt and
	// all later ones. Repeated with the same settings it does nothing. It is ErrUnsupported where the
	// job has no such file, and ErrConflict where it does not run.
	Adapt(ctx context.Context, id JobID, settings map[string]string) error
}

// EncodeSettings makes the content of the settings file: one JSON object
// {"revision": N, "settings": {name: value}} and a newline. The revision is
// positive and never falls during a job, so that the job can say which one it has
// read. A value whose text is a number as JSON writes it is a number, any other a
// string; no settings are {}. A driver writes the file next to its place, syncs it, and renames it
// there, readable only by the job's user. The error is ErrInvalid.
func EncodeSettings(revision int, live map[string]string) ([]byte, error) {
	content := struct {
		Revision int            `json:"revision"`
		Settings map[string]any `json:"settings"`
	}{Revision: revision, Settings: make(map[string]any, len(live))}
	for name, value := range live {
		if name == "" || !utf8.ValidString(name) || !utf8.ValidString(value) {
			return nil, fmt.Errorf("setting %q=%q: want a name and valid UTF-8: %w", name, value, ErrInvalid)
		}
		content.Settings[name] = value
		if isNumber(value) {
			content.Settings[name] = json.Number(value)
		}
	}
	data, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("settings file: %w: %w", ErrInvalid, err)
	}
	return append(data, '\n'), nil
}

// isNumber reports whether a text is a number to JSON and to a reader of float64.
func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil && json.Valid([]byte(text))
}
