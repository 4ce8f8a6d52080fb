import{a as o,b as r}from"./chunk-Q3WSDGXJ.js";import"./chunk-NR6TEYRL.js";export{r as ColourCard,o as ColourChoice};
