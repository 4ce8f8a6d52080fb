import{oa as r}from"./chunk-W74L47U2.js";r();
