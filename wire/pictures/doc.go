// Package pictures fetches pictures of other sites that messages show, so that readers do not tell these sites their
// network addresses. It fetches only addresses that this server has signed when it rendered a message, through the
// guard of package preview. Time, size, type and the number of fetches at a time are bounded.
package pictures
