import{xb as r}from"./chunk-RCSKJ5CI.js";r();
