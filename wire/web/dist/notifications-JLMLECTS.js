import{a as o,b as r}from"./chunk-KNTCSJM5.js";import"./chunk-HL6RA6RA.js";import"./chunk-D666B7Q3.js";import"./chunk-JM4UGWP5.js";export{r as NotificationFields,o as Notifications};
