package sim

import "errors"

// ErrNotTaken is for Config.Faults: a request that was lost on its way. The
// caller sees driver.ErrUnknown, and nothing was done. A plain driver.ErrUnknown
// is the other half of that uncertainty: it was done, and the answer was lost.
var ErrNotTaken = errors.New("request lost on its way")

var errClosed = errors.New("the cluster was closed")
