import{a as o,b as r}from"./chunk-IOS5HSKY.js";import"./chunk-MIA4J2XO.js";import"./chunk-N6COOIYJ.js";import"./chunk-W626PSYW.js";export{r as NotificationFields,o as Notifications};
