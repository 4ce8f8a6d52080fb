import{oa as r}from"./chunk-QLRZ7SRI.js";r();
