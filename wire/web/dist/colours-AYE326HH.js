import{a as o,b as r}from"./chunk-72WGR64B.js";import"./chunk-74IXTQGT.js";export{r as ColourCard,o as ColourChoice};
