package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/verdict"
)

// validate judges a job file as the command does. The file may have errors: that
// is the answer, not an error of the request.
func (h handler) validate(req *http.Request) (any, error) {
	var d api.Draft
	if err := json.NewDecoder(io.LimitReader(req.Body, 16<<20)).Decode(&d); err != nil {
		return nil, fmt.Errorf("%w: %w", errInput, err)
	}
	who, err := h.caller(req)
	if err != nil {
		return nil, err
	}
	v, _ := verdict.Of(h.d.parse, d.Filename, d.Source, d.Variables, verdict.Ground{ // the error is in it
		Driver: h.d.driver.Name(), Can: h.d.driver.Capabilities(), Given: h.d.cfg.Given, Site: h.d.rooms.site,
		Policy: verdict.PolicyOf(h.d.cfg.Site), User: who.Name,
	})
	return v, nil
}
