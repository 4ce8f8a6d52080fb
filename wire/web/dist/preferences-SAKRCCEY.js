import{a as o}from"./chunk-6XDYWLGA.js";import"./chunk-N7HLEIBD.js";import"./chunk-4M4U3DWL.js";import"./chunk-65TW3HXW.js";export{o as Preferences};
