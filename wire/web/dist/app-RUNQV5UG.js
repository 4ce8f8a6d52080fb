import{eb as r}from"./chunk-V6YQS35U.js";r();
