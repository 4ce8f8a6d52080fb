import{sd as r}from"./chunk-74IXTQGT.js";r();
