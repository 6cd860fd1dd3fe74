package driver

import (
	"encoding/base64"
	"strconv"

	"google.golang.org/grpc/codes"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

const (
	defaultPage = 500
	maxPage     = 5000
	pageBytes   = apiv1.MaxMessage / 2
)

// pageSize is how many of a list are put into an answer.
func pageSize(asked uint32) int {
	if asked == 0 {
		return defaultPage
	}
	return int(min(asked, maxPage))
}

// page counts what goes into one answer.
type page struct {
	left  int // how many may still be added
	bytes int
}

// add reports whether one more belongs on the page. The first always does.
func (p *page) add(size int) bool {
	if p.bytes > 0 && (p.left == 0 || p.bytes+size > pageBytes) {
		return false
	}
	p.left--
	p.bytes += size
	return true
}

// pageAfter makes the token of the page that follows an item.
func pageAfter(item string) string { return base64.RawURLEncoding.EncodeToString([]byte(item)) }

// pageItem is the item that a page follows, or empty.
func pageItem(token string) (string, error) {
	item, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", foreignToken()
	}
	return string(item), nil
}

// pageNumber is the number of the item that a page follows, or 0.
func pageNumber(token string) (uint64, error) {
	item, err := pageItem(token)
	if err != nil || item == "" {
		return 0, err
	}
	n, err := strconv.ParseUint(item, 10, 64)
	if err != nil {
		return 0, foreignToken()
	}
	return n, nil
}

func foreignToken() error {
	return refuse(codes.InvalidArgument, "PAGE_TOKEN_INVALID", "the page token is not one of ours: begin again without one")
}
